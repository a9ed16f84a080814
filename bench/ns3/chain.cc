// SPDX-License-Identifier: GPL-2.0-only OR MIT
// ns-3's side of the comparison: N connections from tx over r1 and r2 to rx, the queue at r1.
// usage: chain FLOWS reno|cubic fifo|tbf|fqcodel SECONDS
// Prints one JSON object: goodput and losses of the whole run, and frames that left a device.

#include <cstdio>
#include <string>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

static uint64_t hops, dropped;

static void Left(Ptr<const Packet>)
{
	hops++;
}

// Without a qdisc, what finds the device's queue full.
static void DroppedBefore(Ptr<const Packet>)
{
	dropped++;
}

static void DroppedByQueue(Ptr<const QueueDiscItem>)
{
	dropped++;
}

int main(int argc, char **argv)
{
	if (argc != 5) {
		std::fprintf(stderr, "usage: chain FLOWS reno|cubic fifo|tbf|fqcodel SECONDS\n");
		return 2;
	}
	const uint32_t flows = std::stoul(argv[1]);
	const std::string congestion = argv[2], queue = argv[3];
	const double seconds = std::stod(argv[4]);

	Config::SetDefault("ns3::TcpL4Protocol::SocketType",
			   TypeIdValue(congestion == "cubic" ? TcpCubic::GetTypeId()
							     : TcpLinuxReno::GetTypeId()));
	// As Linux has them, and as the other side's: segments, windows, first window, timeouts.
	Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
	Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
	Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
	Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4 << 20));
	Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));

	NodeContainer nodes;
	nodes.Create(4);
	InternetStackHelper stack;
	stack.Install(nodes);
	const char *rates[] = {"1Gbps", queue == "fifo" ? "100Mbps" : "1Gbps", "1Gbps"};
	const char *delays[] = {"1ms", "8ms", "1ms"};
	Ipv4AddressHelper addresses;
	addresses.SetBase("10.1.1.0", "255.255.255.0");
	Ipv4InterfaceContainer last;
	for (int link = 0; link < 3; link++) {
		PointToPointHelper line;
		line.SetDeviceAttribute("DataRate", StringValue(rates[link]));
		line.SetChannelAttribute("Delay", StringValue(delays[link]));
		line.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize",
			      StringValue(link == 1 && queue == "fifo" ? "100p" : "1000p"));
		NetDeviceContainer devices = line.Install(nodes.Get(link), nodes.Get(link + 1));
		for (uint32_t end = 0; end < 2; end++) {
			Ptr<PointToPointNetDevice> device =
				DynamicCast<PointToPointNetDevice>(devices.Get(end));
			device->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&Left));
		}
		TrafficControlHelper control;
		if (link == 1 && queue == "tbf")
			control.SetRootQueueDisc("ns3::TbfQueueDisc", "MaxSize", StringValue("100p"),
						 "Rate", DataRateValue(DataRate("100Mbps")), "Burst",
						 UintegerValue(3000), "Mtu", UintegerValue(0));
		if (link == 1 && queue == "fqcodel") {
			// A device queue that holds one frame, so that the qdisc decides.
			DynamicCast<PointToPointNetDevice>(devices.Get(0))->SetDataRate(DataRate("100Mbps"));
			control.SetRootQueueDisc("ns3::FqCoDelQueueDisc");
		}
		if (link == 1 && queue != "fifo") {
			DynamicCast<PointToPointNetDevice>(devices.Get(0))
				->GetQueue()
				->SetMaxSize(QueueSize("1p"));
			control.Install(devices.Get(0)).Get(0)->TraceConnectWithoutContext(
				"Drop", MakeCallback(&DroppedByQueue));
		}
		last = addresses.Assign(devices);
		// Where no qdisc was chosen it has put FqCoDel.
		if (link != 1 || queue == "fifo")
			control.Uninstall(devices);
		addresses.NewNetwork();
	}
	nodes.Get(1)->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext(
		"TcDrop", MakeCallback(&DroppedBefore));
	Ipv4GlobalRoutingHelper::PopulateRoutingTables();

	ApplicationContainer sinks;
	for (uint32_t flow = 0; flow < flows; flow++) {
		const uint16_t port = 5001 + flow;
		PacketSinkHelper sink("ns3::TcpSocketFactory",
				      InetSocketAddress(Ipv4Address::GetAny(), port));
		sinks.Add(sink.Install(nodes.Get(3)));
		BulkSendHelper bulk("ns3::TcpSocketFactory",
				    InetSocketAddress(last.GetAddress(1), port));
		bulk.SetAttribute("SendSize", UintegerValue(1448 * 16));
		bulk.Install(nodes.Get(0)).Start(MilliSeconds(flow));
	}
	Simulator::Stop(Seconds(seconds));
	Simulator::Run();
	uint64_t received = 0;
	for (uint32_t flow = 0; flow < flows; flow++)
		received += DynamicCast<PacketSink>(sinks.Get(flow))->GetTotalRx();
	std::printf("{\"goodput_bps\": %.0f, \"dropped\": %llu, \"hops\": %llu}\n",
		    received * 8 / seconds, (unsigned long long)dropped, (unsigned long long)hops);
	Simulator::Destroy();
	return 0;
}
