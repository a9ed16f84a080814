// SPDX-License-Identifier: MIT OR Apache-2.0

// Plays kubelet and API server for pspacer-node with Kubernetes' own structures: registers it,
// prepares and forgets claims by both versions, decodes its ResourceSlice and the manifests
// strictly, and compares how random quantities are read.
//
// usage: kubelet PSPACER-NODE MANIFEST...
//
//	PYTHON  a Python that has grpcio, for client.py; without it that is left out
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
	drav1beta1 "k8s.io/kubelet/pkg/apis/dra/v1beta1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"sigs.k8s.io/yaml"
)

const (
	driver     = "bandwidth.pspacer.internal"
	quantities = 2000
	// RATES_BPS of crates/host/host-config/src/limits.rs.
	leastBps = 2_500
	mostBps  = 100_000_000_000
	seed     = 1
)

// readManifests decodes each object into its type, without unknown keys.
func readManifests(names []string) {
	kinds := map[string]func() any{
		"ServiceAccount":        func() any { return &corev1.ServiceAccount{} },
		"ClusterRole":           func() any { return &rbacv1.ClusterRole{} },
		"ClusterRoleBinding":    func() any { return &rbacv1.ClusterRoleBinding{} },
		"DeviceClass":           func() any { return &resourceapi.DeviceClass{} },
		"DaemonSet":             func() any { return &appsv1.DaemonSet{} },
		"ResourceClaimTemplate": func() any { return &resourceapi.ResourceClaimTemplate{} },
		"Pod":                   func() any { return &corev1.Pod{} },
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		must(err)
		for _, one := range strings.Split(string(text), "\n---\n") {
			var kind metav1.TypeMeta
			must(yaml.Unmarshal([]byte(one), &kind))
			object := kinds[kind.Kind]
			expect(filepath.Base(name)+" has a known "+kind.Kind, object != nil)
			must(yaml.UnmarshalStrict([]byte(one), object()))
		}
	}
}

// server has one slice, and claims whose egress is a text as it comes.
type server struct {
	sync.Mutex
	slice  *resourceapi.ResourceSlice
	puts   int
	egress string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Lock()
	defer s.Unlock()
	const slices = "/apis/resource.k8s.io/v1/resourceslices"
	switch {
	case r.Method == "POST" && r.URL.Path == slices:
		body, err := io.ReadAll(r.Body)
		must(err)
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.DisallowUnknownFields()
		s.slice = &resourceapi.ResourceSlice{}
		must(decoder.Decode(s.slice))
		s.slice.ResourceVersion = "1"
		w.WriteHeader(http.StatusCreated)
		must(json.NewEncoder(w).Encode(s.slice))
	case r.Method == "PUT":
		s.puts++
		http.Error(w, `{"message":"nothing has changed"}`, http.StatusInternalServerError)
	case s.slice != nil && r.URL.Path == slices+"/"+s.slice.Name:
		must(json.NewEncoder(w).Encode(s.slice))
	case strings.HasSuffix(r.URL.Path, "/resourceclaims/c"):
		// The structures would write the quantity in their own way.
		claim := resourceapi.ResourceClaim{}
		claim.Name, claim.Namespace, claim.UID = "c", "default", "uid-c"
		claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{
			{Resource: "pods", Name: "p", UID: "uid-p"}}
		result := resourceapi.DeviceRequestAllocationResult{
			Request: "net", Driver: driver, Pool: "n1", Device: "uplink",
			ConsumedCapacity: map[resourceapi.QualifiedName]resource.Quantity{
				"egress": resource.MustParse("7")}}
		claim.Status.Allocation = &resourceapi.AllocationResult{}
		claim.Status.Allocation.Devices.Results = []resourceapi.DeviceRequestAllocationResult{result}
		text, err := json.Marshal(claim)
		must(err)
		quantity, err := json.Marshal(s.egress)
		must(err)
		_, _ = w.Write(bytes.Replace(text, []byte(`"7"`), quantity, 1))
	default:
		http.Error(w, `{"message":"not found"}`, http.StatusNotFound)
	}
}

// randomQuantity returns a text that is a quantity more often than not.
func randomQuantity(random *rand.Rand) string {
	digits := func(most int) string {
		text := ""
		for range random.Intn(most + 1) {
			text += string(rune('0' + random.Intn(10)*random.Intn(2)))
		}
		return text
	}
	suffixes := []string{"", "", "n", "u", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "e3", "E-2", "e+1", "K", "e"}
	text := []string{"", "", "", "+", "-"}[random.Intn(5)] + digits(9)
	if random.Intn(2) == 0 {
		text += "." + digits(5)
	}
	return text + suffixes[random.Intn(len(suffixes))]
}

// wholeRate returns what a quantity is if it is a rate of whole bit/s that a pod may have.
func wholeRate(text string) (int64, bool) {
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return 0, false
	}
	value := quantity.Value()
	isWhole := quantity.Cmp(*resource.NewQuantity(value, resource.DecimalSI)) == 0
	return value, isWhole && value >= leastBps && value <= mostBps
}

// targets are the ways to name a socket: a kubelet registers a plugin by the path alone (operationexecutor)
// and calls it by unix: and the path (cm/dra/plugin); each has another name of the server.
func targets(path string) []string {
	return []string{path, "unix:" + path, "unix://" + path}
}

// dial dials a socket, with a dialer of its own if its name is the path alone.
func dial(target string) *grpc.ClientConn {
	options := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	if strings.HasPrefix(target, "/") {
		options = append(options, grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}))
	}
	connection, err := grpc.Dial(target, options...)
	must(err)
	return connection
}

func main() {
	readManifests(os.Args[2:])
	api := &server{egress: "100M"}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	go func() { must(http.Serve(listener, api)) }()
	folder, err := os.MkdirTemp("", "kubelet")
	must(err)
	defer os.RemoveAll(folder)
	run := filepath.Join(folder, "run")
	agent := exec.Command(os.Args[1], "run", "--egress", "100gbit", "--ingress", "1500mbit",
		"--node", "n1", "--every", "1s", "--uplink", "lo",
		"--api", "http://"+listener.Addr().String(), "--kubelet", folder)
	agent.Env = append(os.Environ(), "PSPACER_RUN="+run)
	agent.Stdout, agent.Stderr = os.Stdout, os.Stderr
	// It ends with this program, however that ends: with this thread of it.
	runtime.LockOSThread()
	agent.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(agent.Start())
	defer agent.Process.Kill()

	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	socket := filepath.Join(folder, "plugins_registry", driver+"-reg.sock")
	var registry registration.RegistrationClient
	var info *registration.PluginInfo
	for _, target := range targets(socket) {
		registry = registration.NewRegistrationClient(dial(target))
		info, err = registry.GetInfo(ctx, &registration.InfoRequest{}, grpc.WaitForReady(true))
		must(err)
		expect("it answers who dials "+target, info.Name == driver)
	}
	expect("it is a DRA plugin", info.Type == registration.DRAPlugin && info.Name == driver)
	expect("of both versions", len(info.SupportedVersions) == 2 &&
		info.SupportedVersions[0] == drav1.DRAPluginService &&
		info.SupportedVersions[1] == drav1beta1.DRAPluginService)
	_, err = registry.NotifyRegistrationStatus(ctx,
		&registration.RegistrationStatus{PluginRegistered: true})
	must(err)
	for _, target := range targets(info.Endpoint) {
		_, err := drav1.NewDRAPluginClient(dial(target)).NodePrepareResources(ctx, &drav1.NodePrepareResourcesRequest{})
		must(err)
		expect("it answers who dials "+target, true)
	}
	if python := os.Getenv("PYTHON"); python != "" {
		client := exec.Command(python, "client.py", socket, info.Endpoint, driver)
		client.Stdout, client.Stderr = os.Stdout, os.Stderr
		must(client.Run())
	}
	connection := dial(info.Endpoint)
	v1 := drav1.NewDRAPluginClient(connection)
	beta := drav1beta1.NewDRAPluginClient(connection)
	claims := []*drav1.Claim{{Namespace: "default", Name: "c", Uid: "uid-c"}}
	both := append(claims, &drav1.Claim{Namespace: "default", Name: "d", Uid: "uid-d"})
	prepared, err := v1.NodePrepareResources(ctx, &drav1.NodePrepareResourcesRequest{Claims: both})
	must(err)
	one, other := prepared.Claims["uid-c"], prepared.Claims["uid-d"]
	expect("a claim is prepared", one.Error == "" && len(one.Devices) == 1)
	device := one.Devices[0]
	expect("with its device", device.PoolName == "n1" && device.DeviceName == "uplink" &&
		len(device.RequestNames) == 1 && device.RequestNames[0] == "net")
	expect("another has its error", strings.Contains(other.Error, "no such claim"))
	again, err := beta.NodePrepareResources(ctx, &drav1beta1.NodePrepareResourcesRequest{
		Claims: []*drav1beta1.Claim{{Namespace: "default", Name: "c", Uid: "uid-c"}}})
	must(err)
	expect("v1beta1 prepares it again", again.Claims["uid-c"].Error == "")

	random := rand.New(rand.NewSource(seed))
	rates := 0
	for range quantities {
		text := randomQuantity(random)
		api.Lock()
		api.egress = text
		api.Unlock()
		forgotten, err := v1.NodeUnprepareResources(ctx, &drav1.NodeUnprepareResourcesRequest{Claims: claims})
		must(err)
		if answer := forgotten.Claims["uid-c"]; answer == nil || answer.Error != "" {
			log.Fatalf("it is not forgotten: %v", answer)
		}
		prepared, err := v1.NodePrepareResources(ctx, &drav1.NodePrepareResourcesRequest{Claims: claims})
		must(err)
		value, isRate := wholeRate(text)
		if said := prepared.Claims["uid-c"].Error; (said == "") != isRate {
			log.Fatalf("%q: Kubernetes reads %d, %v; the agent says %q", text, value, isRate, said)
		}
		if isRate {
			rates++
			record, err := os.ReadFile(filepath.Join(run, "claims", "uid-p:uid-c.json"))
			must(err)
			if !bytes.Contains(record, fmt.Appendf(nil, `"egress_bps":%d,`, value)) {
				log.Fatalf("%q: Kubernetes reads %d; the agent keeps %s", text, value, record)
			}
		}
	}
	expect(fmt.Sprintf("%d quantities, of which %d are rates, are read as Kubernetes does",
		quantities, rates), rates > quantities/10)
	time.Sleep(2 * time.Second)
	api.Lock()
	defer api.Unlock()
	expect("a slice is published", api.slice != nil && api.slice.Spec.Driver == driver)
	capacity := api.slice.Spec.Devices[0].Capacity["ingress"]
	expect("with its capacity", capacity.Value.Value() == 1_500_000_000 &&
		capacity.RequestPolicy.ValidRange.Max.Value() == 1_500_000_000)
	expect("and is the same after the server has written it in its own way", api.puts == 0)
}
