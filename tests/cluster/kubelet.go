// SPDX-License-Identifier: MIT OR Apache-2.0

// The kubelet's own code, as far as it has to do with drivers: its watcher of plugins, which finds,
// asks and registers them, and its manager of dynamic resources, which has them prepare claims and
// remembers that. Nothing here dials, and nothing here speaks gRPC.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/dra"
	"k8s.io/kubernetes/pkg/kubelet/config"
	"k8s.io/kubernetes/pkg/kubelet/pluginmanager"
)

// kubelet is the part of one that is a driver's client.
type kubelet struct {
	client  *clientset.Clientset
	manager *dra.Manager
	end     func()
}

// kubelet starts that of a node: a later one of the same folder goes on from what it knew.
func (c *cluster) kubelet(home, node string) *kubelet {
	client, err := clientset.NewForConfig(&rest.Config{Host: c.address, BearerToken: admin,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	must(err)
	state := filepath.Join(home, "kubelet/state")
	must(os.MkdirAll(state, 0o755))
	manager, err := dra.NewManager(klog.Background(), client, state)
	must(err)
	ctx, cancel := context.WithCancel(context.Background())
	ready := config.NewSourcesReady(func(sets.Set[string]) bool { return true })
	active := func() []*v1.Pod {
		all, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil
		}
		var found []*v1.Pod
		for at := range all.Items {
			found = append(found, &all.Items[at])
		}
		return found
	}
	own := func() (*v1.Node, error) { return client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{}) }
	must(manager.Start(ctx, active, own, ready))
	plugins := pluginmanager.NewPluginManager(filepath.Join(home, "kubelet/plugins_registry"),
		record.NewFakeRecorder(100))
	plugins.AddHandler(registration.DRAPlugin, manager.GetWatcherHandler())
	stop := make(chan struct{})
	go plugins.Run(ready, stop)
	return &kubelet{client, manager, func() { close(stop); cancel() }}
}

func (k *kubelet) pod(name string) *v1.Pod {
	pod, err := k.client.CoreV1().Pods("default").Get(context.Background(), name, metav1.GetOptions{})
	must(err)
	return pod
}

// prepare has the driver prepare the claims of a pod, as before its sandbox is made.
func (k *kubelet) prepare(pod string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return k.manager.PrepareResources(ctx, k.pod(pod))
}

// unprepare has it forget them, as once the pod has ended.
func (k *kubelet) unprepare(pod *v1.Pod) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return k.manager.UnprepareResources(ctx, pod)
}

// records returns what the driver keeps of claims.
func records(home string) []string {
	found, err := filepath.Glob(filepath.Join(home, "run/claims/*.json"))
	must(err)
	return found
}

// drives goes with a driver through what befalls a node: pods that come and go, a driver that is
// killed, ends and comes back, a kubelet that comes back. `restart` ends the driver by a signal's
// name and starts another.
func (c *cluster) drives(home, node, pod string, restart func(kill bool)) {
	first := c.kubelet(home, node)
	until("the kubelet has registered the driver and it prepares a pod's claim", func() bool {
		return first.prepare(pod) == nil
	})
	expect("which it keeps", len(records(home)) == 1)
	expect("a second time nothing changes", first.prepare(pod) == nil && len(records(home)) == 1)

	restart(true)
	until("a driver that was killed and came back forgets it for the kubelet", func() bool {
		return first.unprepare(first.pod(pod)) == nil
	})
	expect("and keeps nothing", len(records(home)) == 0)
	until("and prepares it again", func() bool { return first.prepare(pod) == nil })
	restart(false)
	until("so does one that was ended in order", func() bool {
		return first.unprepare(first.pod(pod)) == nil && first.prepare(pod) == nil
	})
	expect("it keeps one", len(records(home)) == 1)

	first.end()
	second := c.kubelet(home, node)
	until("a kubelet that comes back knows what it prepared, and has it forgotten", func() bool {
		return second.unprepare(second.pod(pod)) == nil
	})
	expect("nothing is left", len(records(home)) == 0)
	until("it prepares the claim once more", func() bool { return second.prepare(pod) == nil })
	expect("as before", len(records(home)) == 1)
	must(second.unprepare(second.pod(pod)))
	second.end()
	fmt.Println("#", "registered and driven by k8s.io/kubernetes/pkg/kubelet")
}
