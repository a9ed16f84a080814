// SPDX-License-Identifier: MIT OR Apache-2.0
// Delay bounds of chains by the DiscoDNC, as the table that
// crates/streams/predict/tests/discodnc.rs compares ours with. See run.sh.

import de.uni_kl.cs.discodnc.curves.CurvePwAffine;
import de.uni_kl.cs.discodnc.nc.AnalysisConfig.Multiplexing;
import de.uni_kl.cs.discodnc.nc.CalculatorConfig;
import de.uni_kl.cs.discodnc.nc.analyses.SeparateFlowAnalysis;
import de.uni_kl.cs.discodnc.nc.analyses.TotalFlowAnalysis;
import de.uni_kl.cs.discodnc.network.Flow;
import de.uni_kl.cs.discodnc.network.Network;
import de.uni_kl.cs.discodnc.network.Server;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Random;

public final class Discodnc {
	/** Chains of random servers, beside those of the paper. */
	private static final int RANDOM_CHAINS = 60;
	private static final int MOST_HOPS = 9;

	private record Hop(long rateBps, long latencyNs) {}

	private record Chain(long burstBytes, long rateBps, List<Hop> hops) {}

	public static void main(String[] arguments) throws Exception {
		CalculatorConfig.getInstance().setNumImpl(CalculatorConfig.NumImpl.REAL_DOUBLE_PRECISION);
		System.out.println("burst_bytes,rate_bps,hops,per_hop_sum_ns,pay_bursts_only_once_ns");
		for (Chain chain : chains()) {
			System.out.println(row(chain));
		}
	}

	private static List<Chain> chains() {
		List<Chain> chains = new ArrayList<>();
		// Paper 004: a period's bytes at once, 10 ms a router.
		for (int hops = 1; hops <= MOST_HOPS; hops++) {
			List<Hop> same = new ArrayList<>();
			for (int hop = 0; hop < hops; hop++) {
				same.add(new Hop(1_000_000, 10_000_000));
			}
			chains.add(new Chain(1_250, 1_000_000, same));
		}
		Random random = new Random(1);
		for (int i = 0; i < RANDOM_CHAINS; i++) {
			long rateBps = 1_000L * (1 + random.nextInt(1_000_000));
			List<Hop> hops = new ArrayList<>();
			int count = 1 + random.nextInt(MOST_HOPS);
			for (int hop = 0; hop < count; hop++) {
				// Some as slow as the stream, some without latency.
				long more = random.nextInt(4) == 0 ? 0 : 1_000L * random.nextInt(1_000_000);
				long latencyNs = random.nextInt(4) == 0 ? 0 : 1_000L * random.nextInt(20_000);
				hops.add(new Hop(rateBps + more, latencyNs));
			}
			long burstBytes = random.nextInt(6) == 0 ? 0 : 1 + random.nextInt(100_000);
			chains.add(new Chain(burstBytes, rateBps, hops));
		}
		return chains;
	}

	/** In bits and microseconds, so that no number is near the library's epsilon. */
	private static String row(Chain chain) throws Exception {
		CurvePwAffine curves = CurvePwAffine.getFactory();
		Network network = new Network();
		List<Server> path = new ArrayList<>();
		StringBuilder hops = new StringBuilder();
		for (Hop hop : chain.hops()) {
			Server server = network.addServer(
				curves.createRateLatency(hop.rateBps() / 1e6, hop.latencyNs() / 1e3), Multiplexing.FIFO);
			if (!path.isEmpty()) {
				network.addLink(path.get(path.size() - 1), server);
				hops.append(' ');
			}
			path.add(server);
			hops.append(hop.rateBps()).append('@').append(hop.latencyNs());
		}
		Flow flow = network.addFlow(
			curves.createTokenBucket(chain.rateBps() / 1e6, chain.burstBytes() * 8.0),
			path.get(0), path.get(path.size() - 1));
		TotalFlowAnalysis perHop = new TotalFlowAnalysis(network);
		perHop.performAnalysis(flow);
		SeparateFlowAnalysis once = new SeparateFlowAnalysis(network);
		once.performAnalysis(flow);
		return String.format(Locale.ROOT, "%d,%d,%s,%.3f,%.3f", chain.burstBytes(), chain.rateBps(), hops,
			perHop.getDelayBound().doubleValue() * 1e3, once.getDelayBound().doubleValue() * 1e3);
	}
}
