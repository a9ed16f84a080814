// SPDX-License-Identifier: MIT OR Apache-2.0

// The kubelet's own code calls an agent: its plugin manager watches the folder of registrations, and
// its manager of dynamic resources prepares and forgets the claims of pods that the scheduler has
// placed. Agent and kubelet are restarted meanwhile, and the agent is upgraded under calls.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/dra"
	"k8s.io/kubernetes/pkg/kubelet/cm/dra/plugin"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/config"
	"k8s.io/kubernetes/pkg/kubelet/pluginmanager"
)

// The node of this part, and upgrades under calls.
const (
	paced    = "n3"
	upgrades = 3
)

// kubelet is what of a node's kubelet talks to drivers.
type kubelet struct {
	*dra.Manager
	plugins *plugin.DRAPluginManager
	client  *kubernetes.Clientset
	end     context.CancelFunc
}

// startKubelet starts one with the rights of its node. What it knows is in the node's folder.
func (c *cluster) startKubelet(home string) *kubelet {
	// Without a bound of requests a second: calls are to come closer than a kubelet makes them.
	client, err := kubernetes.NewForConfig(&rest.Config{Host: c.address, BearerToken: nodes, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	must(err)
	ctx, end := context.WithCancel(context.Background())
	folder := filepath.Join(home, "kubelet")
	manager, err := dra.NewManager(klog.Background(), client, folder)
	must(err)
	active := func() []*corev1.Pod {
		all, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + paced})
		must(err)
		var pods []*corev1.Pod
		for at := range all.Items {
			pods = append(pods, &all.Items[at])
		}
		return pods
	}
	node := func() (*corev1.Node, error) {
		return client.CoreV1().Nodes().Get(ctx, paced, metav1.GetOptions{})
	}
	ready := kubeletconfig.NewSourcesReady(func(sets.Set[string]) bool { return true })
	must(manager.Start(ctx, active, node, ready))
	watcher := pluginmanager.NewPluginManager(filepath.Join(folder, "plugins_registry"), &record.FakeRecorder{})
	watcher.AddHandler(registration.DRAPlugin, manager.GetWatcherHandler())
	go watcher.Run(ready, ctx.Done())
	return &kubelet{manager, manager.GetWatcherHandler().(*plugin.DRAPluginManager), client, end}
}

func (k *kubelet) stop() {
	k.end()
	k.plugins.Stop()
}

func (k *kubelet) knows() bool {
	_, err := k.plugins.GetPlugin(driver)
	return err == nil
}

// pod returns one as the API has it.
func (k *kubelet) pod(name string) *corev1.Pod {
	found, err := k.client.CoreV1().Pods("default").Get(context.Background(), name, metav1.GetOptions{})
	must(err)
	return found
}

func (k *kubelet) prepare(pod *corev1.Pod) error {
	return k.PrepareResources(context.Background(), pod)
}

func (k *kubelet) unprepare(pod *corev1.Pod) error {
	return k.UnprepareResources(context.Background(), pod)
}

// node is that of this part: its agents, and what they keep.
type node struct {
	*cluster
	folder, program string
}

func (n *node) home() string { return filepath.Join(n.folder, paced) }

// start starts an agent, as the pod of a uid if there is one.
func (n *node) start(uid string) *exec.Cmd {
	agent, _ := n.agent(n.folder, n.program, paced, "1gbit", uid)
	return agent
}

// registrations returns how often agents were told that the kubelet knows them.
func (n *node) registrations() int {
	said, err := os.ReadFile(filepath.Join(n.home(), "pspacer-node.log"))
	must(err)
	return strings.Count(string(said), "registered: the kubelet knows the driver")
}

// registered waits until an agent is, after something was done.
func (n *node) registered(what string, do func()) {
	before := n.registrations()
	do()
	until(what, func() bool { return n.registrations() > before })
}

func (n *node) kill(agent *exec.Cmd, signal syscall.Signal) {
	must(agent.Process.Signal(signal))
	_ = agent.Wait()
}

// sockets returns how many sockets agents have.
func (n *node) sockets() int {
	all, err := filepath.Glob(filepath.Join(n.home(), "kubelet/plugins*/*.sock"))
	must(err)
	of, err := filepath.Glob(filepath.Join(n.home(), "kubelet/plugins", driver, "*.sock"))
	must(err)
	return len(all) + len(of)
}

// has checks what an agent keeps of a pod's claim, and what of the budget is granted.
func (n *node) has(what string, pod *corev1.Pod, egress, granted int) {
	records, err := filepath.Glob(filepath.Join(n.home(), "run/claims", string(pod.UID)+":*.json"))
	must(err)
	var found string
	for _, record := range records {
		text, err := os.ReadFile(record)
		must(err)
		found += string(text)
	}
	is := egress == 0 && found == "" || egress > 0 && len(records) == 1 &&
		strings.Contains(found, fmt.Sprintf(`"egress_bps":%d,`, egress))
	if !is {
		log.Panicf("not so: %s: its claim is %q, expected %d bit/s", what, found, egress)
	}
	status := exec.Command(n.program, "status", "--json")
	status.Env = append(os.Environ(), "PSPACER_RUN="+filepath.Join(n.home(), "run"))
	said, err := status.Output()
	must(err)
	var all object
	must(json.Unmarshal(said, &all))
	if sum := at(all, "granted", "egress_bps"); sum != float64(granted) {
		log.Panicf("not so: %s: %v bit/s are granted, expected %d", what, sum, granted)
	}
	fmt.Println("ok -", what)
}

// calls prepares and forgets a pod's claim over and over until an end. Returns how often, and what failed.
func (k *kubelet) calls(pod *corev1.Pod, end *atomic.Bool) (int, []error) {
	var failed []error
	count := 0
	for ; !end.Load(); count++ {
		if err := errors.Join(k.prepare(pod), k.unprepare(pod)); err != nil {
			failed = append(failed, err)
		}
	}
	return count, failed
}

// under makes calls while something else is done.
func (k *kubelet) under(pod *corev1.Pod, do func()) (int, []error) {
	var end atomic.Bool
	var count int
	var failed []error
	done := make(chan bool)
	go func() {
		defer close(done)
		count, failed = k.calls(pod, &end)
	}()
	do()
	end.Store(true)
	<-done
	return count, failed
}

// kubelets checks all of it.
func (c *cluster) kubelets(folder, program string, example map[string]string) {
	said, err := os.Create(filepath.Join(folder, "kubelet.log"))
	must(err)
	klog.LogToStderr(false)
	klog.SetOutput(said)
	must(utilfeature.DefaultMutableFeatureGate.Set("DRAConsumableCapacity=true"))
	n := &node{c, folder, program}
	c.node(paced)
	agent := n.start("")
	k := c.startKubelet(n.home())
	until("the kubelet sees the registration", k.knows)
	until("and the agent is told", func() bool { return n.registrations() == 1 })
	until("its node has a slice", func() bool { return c.slice(paced) != nil })
	pinned := strings.Replace(example["Pod"], "spec:\n", "spec:\n  nodeSelector: {kubernetes.io/hostname: "+paced+"}\n", 1)
	pods := map[string]*corev1.Pod{}
	for name, egress := range map[string]string{"first": "100M", "second": "200M", "third": "300M", "small": "1k"} {
		c.pod(map[string]string{"ResourceClaimTemplate": example["ResourceClaimTemplate"], "Pod": pinned}, name, egress)
		until(name+" has the node", func() bool { return c.nodeOf(name) == paced })
		pods[name] = k.pod(name)
	}
	first, second, third, small := pods["first"], pods["second"], pods["third"], pods["small"]

	n.has("nothing is kept before the kubelet asks", first, 0, 0)
	must(k.prepare(first))
	n.has("what the kubelet prepares is kept", first, 100e6, 100e6)
	must(k.prepare(first))
	n.has("once, also if it asks again", first, 100e6, 100e6)
	infos, err := k.GetContainerClaimInfos(first, &first.Spec.Containers[0])
	must(err)
	expect("the kubelet has the claim of the container", len(infos) == 1)
	devices := infos[0].DriverState[driver].Devices
	expect("with its device", len(devices) == 1 && devices[0].PoolName == paced && devices[0].DeviceName == "uplink" &&
		len(devices[0].RequestNames) == 1 && devices[0].RequestNames[0] == "net")
	must(k.prepare(second))
	n.has("and of another pod", second, 200e6, 300e6)
	must(k.unprepare(first))
	n.has("what it forgets is gone", first, 0, 200e6)

	must(k.prepare(small))
	n.has("what is too low to be paced is rounded up by the scheduler", small, 2500, 200e6+2500)
	must(k.unprepare(small))

	n.kill(agent, syscall.SIGKILL)
	expect("an agent that is killed answers nothing", k.prepare(first) != nil)
	n.registered("one that comes after it is registered", func() { agent = n.start("") })
	until("and prepares", func() bool { return k.prepare(first) == nil })
	n.has("what the kubelet asks", first, 100e6, 300e6)
	n.has("and has what was there", second, 200e6, 300e6)

	n.kill(agent, syscall.SIGTERM)
	expect("one that ends takes its sockets along", n.sockets() == 0)
	until("and is not registered any more", func() bool { return !k.knows() })
	expect("the kubelet says so", strings.Contains(fmt.Sprint(k.prepare(third)), "is not registered"))
	n.registered("one that comes after it is registered, too", func() { agent = n.start("") })
	must(k.prepare(third))
	n.has("and prepares", third, 300e6, 600e6)

	k.stop()
	n.registered("a kubelet that starts again registers the agent", func() { k = c.startKubelet(n.home()) })
	expect("it knows what it had prepared", k.PodMightNeedToUnprepareResources(third.UID))
	must(k.prepare(third))
	n.has("which stays", third, 300e6, 600e6)
	for _, pod := range []*corev1.Pod{first, second, third} {
		must(k.unprepare(pod))
	}
	n.has("until the kubelet forgets it", third, 0, 0)
	until("its node has a slice again", func() bool { return c.slice(paced) != nil })

	registry := filepath.Join(n.home(), "kubelet/plugins_registry", driver+"-reg.sock")
	n.registered("a socket that somebody removes is made again", func() { must(os.Remove(registry)) })
	must(k.prepare(first))
	must(k.unprepare(first))

	count, failed := k.under(first, func() {
		n.kill(agent, syscall.SIGTERM)
		n.registered("an upgrade by one after the other", func() { agent = n.start("") })
	})
	expect(fmt.Sprintf("has a gap, in which %d of %d calls fail", len(failed), count), len(failed) > 0)
	fmt.Println("#", failed[0])

	// What has no instance goes first.
	next := n.start("instance-0")
	until("one with an instance stands beside it", func() bool { return n.sockets() == 4 })
	n.kill(agent, syscall.SIGTERM)
	agent = next
	until("and takes its place", func() bool { return n.sockets() == 2 && k.prepare(second) == nil })
	version := at(c.slice(paced), "metadata", "resourceVersion")
	for number := 1; number <= upgrades; number++ {
		count, failed := k.under(first, func() {
			n.registered("a second instance is registered", func() { next = n.start(fmt.Sprintf("instance-%d", number)) })
			n.kill(agent, syscall.SIGTERM)
			// The kubelet looks at its folder each second.
			time.Sleep(3 * time.Second)
			agent = next
		})
		for _, err := range failed {
			log.Print(err)
		}
		expect(fmt.Sprintf("each of %d calls during an upgrade is answered", count), count > 0 && len(failed) == 0)
	}
	n.has("with what was prepared before", second, 200e6, 200e6)
	expect("the slice is the same", at(c.slice(paced), "metadata", "resourceVersion") == version)
	n.registered("a second instance is registered", func() { next = n.start("killed") })
	n.kill(next, syscall.SIGKILL)
	until("and passed over after it was killed", func() bool { return k.prepare(first) == nil })
	k.stop()
	expect("its sockets are left", n.sockets() == 4)
	n.registered("a kubelet that starts beside them finds the first", func() { k = c.startKubelet(n.home()) })
	must(k.unprepare(first))
	must(k.unprepare(second))
	n.has("and has it forget", second, 0, 0)
	k.stop()
	n.kill(agent, syscall.SIGTERM)
	for name := range pods {
		c.remove(places["Pod"] + "/" + name)
	}
	c.remove("/api/v1/nodes/" + paced)
}
