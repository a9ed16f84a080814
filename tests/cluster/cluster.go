// SPDX-License-Identifier: MIT OR Apache-2.0

// Runs Kubernetes' own API server, scheduler and controllers over etcd, on loopback, with nodes that
// are objects alone. pspacer-node of two nodes publishes what they have, with the rights of its
// manifest and no others; the scheduler places pods of the example's claim. kubelet.go has the
// kubelet's own code prepare them on a third. No container runs.
//
// usage: cluster BIN ETCD PSPACER-NODE KUBERNETES
//
//	BIN         the folder of kube-apiserver, kube-scheduler and kube-controller-manager
//	KUBERNETES  the folder of the manifests (packaging/kubernetes)
package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
)

const (
	driver    = "bandwidth.pspacer.internal"
	admin     = "administrator"
	nodes     = "nodes"
	resources = "/apis/resource.k8s.io/v1"
	pods      = "/api/v1/namespaces/default/pods"
	claims    = resources + "/namespaces/default/resourceclaims"
	templates = resources + "/namespaces/default/resourceclaimtemplates"
	// Most time until something comes that has to.
	patience = 60 * time.Second
	// Time in which something that must not come would have.
	quiet = 5 * time.Second
)

// Where objects of a kind are.
var places = map[string]string{
	"ServiceAccount":        "/api/v1/namespaces/kube-system/serviceaccounts",
	"ClusterRole":           "/apis/rbac.authorization.k8s.io/v1/clusterroles",
	"ClusterRoleBinding":    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
	"DeviceClass":           resources + "/deviceclasses",
	"DaemonSet":             "/apis/apps/v1/namespaces/kube-system/daemonsets",
	"ResourceClaimTemplate": templates,
	"Pod":                   pods,
}

type object = map[string]any

// at returns what is at a path of keys and numbers, or nil.
func at(value any, path ...any) any {
	for _, step := range path {
		switch key := step.(type) {
		case string:
			of, _ := value.(object)
			value = of[key]
		case int:
			of, _ := value.([]any)
			if key >= len(of) {
				return nil
			}
			value = of[key]
		}
	}
	return value
}

func text(value any) string {
	is, _ := value.(string)
	return is
}

// freePort returns a port of loopback that nobody has.
func freePort() int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// start runs a program until this one ends, however that ends. What it says goes to a file.
func start(folder, name string, environment []string, args ...string) *exec.Cmd {
	said, err := os.OpenFile(filepath.Join(folder, filepath.Base(name)+".log"),
		os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	must(err)
	command := exec.Command(name, args...)
	command.Dir = folder
	command.Env = append(os.Environ(), environment...)
	command.Stdout, command.Stderr = said, said
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(command.Start())
	return command
}

// cluster is an API server, as somebody with a token sees it.
type cluster struct {
	address string
	client  *http.Client
}

// ask sends a request and returns the answer's code and object.
func (c *cluster) ask(token, method, path, body string) (int, object) {
	request, err := http.NewRequest(method, c.address+path, strings.NewReader(body))
	must(err)
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/yaml")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := c.client.Do(request)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	must(err)
	var found object
	_ = json.Unmarshal(answer, &found)
	return response.StatusCode, found
}

// put makes an object, without an unknown key.
func (c *cluster) put(path, body string) object {
	code, answer := c.ask(admin, http.MethodPost, path+"?fieldValidation=Strict", body)
	if code != http.StatusCreated {
		log.Panicf("POST %s: %d %v\n%s", path, code, answer["message"], body)
	}
	return answer
}

func (c *cluster) get(path string) object {
	_, found := c.ask(admin, http.MethodGet, path, "")
	return found
}

// until waits for something that has to come.
func until(what string, isSo func() bool) {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if isSo() {
			fmt.Println("ok -", what)
			return
		}
	}
	log.Panicf("not so after %v: %s", patience, what)
}

// never waits for as long as something would take that must not come.
func never(what string, isSo func() bool) {
	for end := time.Now().Add(quiet); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if isSo() {
			log.Panicf("not so: %s", what)
		}
	}
	fmt.Println("ok -", what)
}

// manifests returns the objects of a file by their kinds.
func manifests(name string) map[string]string {
	all, err := os.ReadFile(name)
	must(err)
	found := map[string]string{}
	for _, one := range strings.Split(string(all), "\n---\n") {
		for line := range strings.Lines(one) {
			if kind, is := strings.CutPrefix(line, "kind: "); is {
				found[strings.TrimSpace(kind)] = one
			}
		}
	}
	return found
}

// key writes a key that signs tokens.
func key(file string) {
	made, err := rsa.GenerateKey(rand.Reader, 2048)
	must(err)
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(made)}
	must(os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
}

// begin starts all of the cluster in a folder.
func begin(folder, bin, etcd string) *cluster {
	store, peer := freePort(), freePort()
	url := func(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }
	start(folder, etcd, nil, "--data-dir", "data",
		"--listen-client-urls", url(store), "--advertise-client-urls", url(store),
		"--listen-peer-urls", url(peer))
	key(filepath.Join(folder, "tokens.key"))
	accounts := admin + ",administrator,1,\"system:masters\"\n" +
		nodes + ",system:node:" + paced + ",2,\"system:nodes\"\n"
	must(os.WriteFile(filepath.Join(folder, "accounts.csv"), []byte(accounts), 0o600))
	port := freePort()
	gate := "--feature-gates=DRAConsumableCapacity=true"
	start(folder, filepath.Join(bin, "kube-apiserver"), nil, "--etcd-servers="+url(store),
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--cert-dir=certificates", "--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=tokens.key", "--service-account-signing-key-file=tokens.key",
		"--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=Node,RBAC",
		"--token-auth-file=accounts.csv", "--endpoint-reconciler-type=none", gate)
	c := &cluster{address: fmt.Sprintf("https://127.0.0.1:%d", port), client: &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		Timeout:   10 * time.Second,
	}}
	until("the API server is ready", func() bool {
		code, _ := c.ask(admin, http.MethodGet, "/readyz", "")
		return code == http.StatusOK
	})
	config, err := json.Marshal(object{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": []object{{"name": "k", "cluster": object{
			"server": c.address, "insecure-skip-tls-verify": true}}},
		"users":    []object{{"name": "a", "user": object{"token": admin}}},
		"contexts": []object{{"name": "c", "context": object{"cluster": "k", "user": "a"}}},
	})
	must(err)
	must(os.WriteFile(filepath.Join(folder, "config"), config, 0o600))
	for _, name := range []string{"kube-scheduler", "kube-controller-manager"} {
		args := []string{"--kubeconfig=config", "--leader-elect=false", gate,
			fmt.Sprintf("--secure-port=%d", freePort()), "--bind-address=127.0.0.1"}
		start(folder, filepath.Join(bin, name), nil, args...)
	}
	return c
}

// node makes a node, and says of it from time to time that it is ready.
func (c *cluster) node(name string) {
	c.put("/api/v1/nodes", `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "`+name+`",
		"labels": {"kubernetes.io/hostname": "`+name+`"}}}`)
	room := `{"cpu": "8", "memory": "16Gi", "pods": "100"}`
	beat := func() {
		now := time.Now().UTC().Format(time.RFC3339)
		status := `{"status": {"allocatable": ` + room + `, "capacity": ` + room + `, "conditions": [{
			"type": "Ready", "status": "True", "reason": "KubeletReady",
			"lastHeartbeatTime": "` + now + `", "lastTransitionTime": "` + now + `"}]}}`
		c.ask(admin, http.MethodPatch, "/api/v1/nodes/"+name+"/status", status)
	}
	beat()
	go func() {
		for range time.Tick(5 * time.Second) {
			beat()
		}
	}()
}

// place writes a file in one step, as the kubelet does: an agent that runs may read it at any time.
func place(path string, text []byte) {
	must(os.WriteFile(path+".new", text, 0o600))
	must(os.Rename(path+".new", path))
}

// agent runs pspacer-node of a node with the rights of its account, as the pod of a uid if there is
// one, and returns it and its token.
func (c *cluster) agent(folder, program, node, egress, uid string) (*exec.Cmd, string) {
	home := filepath.Join(folder, node)
	for _, part := range []string{"account", "kubelet/plugins_registry", "run"} {
		must(os.MkdirAll(filepath.Join(home, part), 0o755))
	}
	request := `{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}`
	account := places["ServiceAccount"] + "/pspacer-node/token"
	code, answer := c.ask(admin, http.MethodPost, account, request)
	expect("the account of "+node+" has a token", code == http.StatusCreated)
	token := text(at(answer, "status", "token"))
	place(filepath.Join(home, "account/token"), []byte(token))
	authority, err := os.ReadFile(filepath.Join(folder, "certificates/apiserver.crt"))
	must(err)
	place(filepath.Join(home, "account/ca.crt"), authority)
	environment := []string{"PSPACER_RUN=" + filepath.Join(home, "run"), "POD_UID=" + uid}
	return start(home, program, environment, "run", "--egress", egress, "--ingress", "1gbit",
		"--node", node, "--uplink", "lo", "--every", "1s", "--api", c.address,
		"--account", filepath.Join(home, "account"), "--kubelet", filepath.Join(home, "kubelet")), token
}

// slice returns the published slice of a node, or nil.
func (c *cluster) slice(node string) object {
	all, _ := at(c.get(resources+"/resourceslices"), "items").([]any)
	for _, one := range all {
		if at(one, "spec", "nodeName") == node && at(one, "spec", "driver") == driver {
			return one.(object)
		}
	}
	return nil
}

// pod makes a pod of the example with a claim of so much, by a template of its own.
func (c *cluster) pod(example map[string]string, name, egress string) {
	template := strings.ReplaceAll(example["ResourceClaimTemplate"], "bandwidth-100m", "claim-"+name)
	c.put(templates, strings.ReplaceAll(template, "egress: 100M", "egress: "+egress))
	one := strings.ReplaceAll(example["Pod"], "bandwidth-100m", "claim-"+name)
	c.put(pods, strings.Replace(one, "name: sender", "name: "+name, 1))
}

func (c *cluster) nodeOf(pod string) string {
	return text(at(c.get(pods+"/"+pod), "spec", "nodeName"))
}

// refused returns why the scheduler has no node for a pod, or nothing.
func (c *cluster) refused(pod string) string {
	all, _ := at(c.get(pods+"/"+pod), "status", "conditions").([]any)
	for _, one := range all {
		if at(one, "type") == "PodScheduled" && at(one, "status") == "False" {
			return text(at(one, "message"))
		}
	}
	return ""
}

// claimOf returns the claim that was made for a pod.
func (c *cluster) claimOf(pod string) object {
	name := text(at(c.get(pods+"/"+pod), "status", "resourceClaimStatuses", 0, "resourceClaimName"))
	return c.get(claims + "/" + name)
}

func (c *cluster) remove(path string) {
	code, answer := c.ask(admin, http.MethodDelete, path, `{"gracePeriodSeconds": 0}`)
	if code != http.StatusOK {
		log.Panicf("DELETE %s: %d %v", path, code, answer["message"])
	}
}

// rights checks what the account of the agent may not do.
func (c *cluster) rights(token string) {
	for _, one := range [][2]string{
		{http.MethodGet, "/api/v1/secrets"},
		{http.MethodGet, pods},
		{http.MethodGet, claims},
		{http.MethodGet, "/api/v1/nodes"},
		{http.MethodPost, pods},
		{http.MethodDelete, resources + "/resourceslices/any"},
		{http.MethodDelete, "/api/v1/nodes/n1"},
	} {
		code, _ := c.ask(token, one[0], one[1], `{}`)
		expect("its account may not "+one[0]+" "+one[1], code == http.StatusForbidden)
	}
}

// prepare asks an agent for a claim as the kubelet would, and returns its record of it.
func prepare(home string, claim object) (string, string) {
	socket := filepath.Join(home, "kubelet/plugins", driver)
	all, err := filepath.Glob(filepath.Join(socket, "*.sock"))
	must(err)
	expect("the agent listens", len(all) == 1)
	connection, err := grpc.NewClient("unix://"+all[0], grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(err)
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	uid := text(at(claim, "metadata", "uid"))
	answer, err := drav1.NewDRAPluginClient(connection).NodePrepareResources(ctx,
		&drav1.NodePrepareResourcesRequest{Claims: []*drav1.Claim{{
			Namespace: "default", Name: text(at(claim, "metadata", "name")), UID: uid}}})
	must(err)
	records, err := filepath.Glob(filepath.Join(home, "run/claims/*:"+uid+".json"))
	must(err)
	if len(records) != 1 {
		return answer.Claims[uid].GetError(), ""
	}
	record, err := os.ReadFile(records[0])
	must(err)
	return answer.Claims[uid].GetError(), string(record)
}

func main() {
	bin, etcd, program := os.Args[1], os.Args[2], os.Args[3]
	of := func(name string) map[string]string { return manifests(filepath.Join(os.Args[4], name)) }
	manifest, example := of("pspacer-node.yaml"), of("claim-example.yaml")
	// Programs end with this thread.
	runtime.LockOSThread()
	folder, err := os.MkdirTemp("", "cluster")
	must(err)
	defer os.RemoveAll(folder)
	c := begin(folder, bin, etcd)

	for _, kind := range []string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "DeviceClass", "DaemonSet"} {
		c.put(places[kind], manifest[kind])
	}
	c.put(places["DaemonSet"], of("pspacer-cni.yaml")["DaemonSet"])
	fmt.Println("ok - the manifests are taken as they are")
	until("pods have an account", func() bool {
		code, _ := c.ask(admin, http.MethodGet, "/api/v1/namespaces/default/serviceaccounts/default", "")
		return code == http.StatusOK
	})
	c.put(places["Pod"], of("pod-example.yaml")["Pod"])
	c.remove(pods + "/paced")
	c.kubelets(folder, program, example)
	c.node("n1")
	first, token := c.agent(folder, program, "n1", "1gbit", "")
	until("its node has a slice", func() bool { return c.slice("n1") != nil })
	slice := c.slice("n1")
	expect("of one device, several times", at(slice, "spec", "devices", 0, "allowMultipleAllocations") == true)
	expect("with its capacity", at(slice, "spec", "devices", 0, "capacity", "egress", "value") == "1G")
	c.rights(token)

	c.put(templates, example["ResourceClaimTemplate"])
	c.put(pods, example["Pod"])
	until("the example's pod has the node", func() bool { return c.nodeOf("sender") == "n1" })
	result := at(c.claimOf("sender"), "status", "allocation", "devices", "results", 0)
	expect("its claim got 100 Mbit/s to send", at(result, "consumedCapacity", "egress") == "100M")
	expect("and 50 to receive", at(result, "consumedCapacity", "ingress") == "50M")
	share := at(result, "shareID")
	expect("as a share", text(share) != "")
	c.pod(example, "half", "500M")
	until("a pod of 500 Mbit/s has the node, too", func() bool { return c.nodeOf("half") == "n1" })
	result = at(c.claimOf("half"), "status", "allocation", "devices", "results", 0)
	expect("of the same device", at(result, "device") == at(slice, "spec", "devices", 0, "name"))
	expect("by a share of its own", text(at(result, "shareID")) != "" && at(result, "shareID") != share)
	c.pod(example, "more", "401M")
	until("401 Mbit/s are more than is left", func() bool { return c.refused("more") != "" })
	fmt.Println("#", c.refused("more"))
	never("and stay so", func() bool { return c.nodeOf("more") != "" })
	c.pod(example, "rest", "400M")
	until("400 are what is left", func() bool { return c.nodeOf("rest") == "n1" })

	said, record := prepare(filepath.Join(folder, "n1"), c.claimOf("half"))
	expect("the agent prepares what the scheduler gave", said == "" && strings.Contains(record, `"egress_bps":500000000,`))
	said, record = prepare(filepath.Join(folder, "n1"), c.claimOf("more"))
	expect("and refuses what it did not", said != "" && record == "")
	fmt.Println("#", said)

	c.node("n2")
	c.agent(folder, program, "n2", "2gbit", "")
	until("another node takes what the first could not", func() bool { return c.nodeOf("more") == "n2" })
	c.pod(example, "large", "1500M")
	until("and what is more than the first has at all", func() bool { return c.nodeOf("large") == "n2" })

	c.remove(pods + "/half")
	c.pod(example, "next", "500M")
	until("what a pod had is given to the next", func() bool { return c.nodeOf("next") == "n1" })

	version := func() any { return at(c.slice("n1"), "metadata", "resourceVersion") }
	before := version()
	must(first.Process.Kill())
	_, _ = first.Process.Wait()
	first, _ = c.agent(folder, program, "n1", "1gbit", "")
	never("an agent that is killed and comes back leaves the slice as it is", func() bool { return version() != before })
	must(first.Process.Kill())
	_, _ = first.Process.Wait()
	c.agent(folder, program, "n1", "3gbit", "")
	until("one with another capacity publishes that", func() bool {
		return at(c.slice("n1"), "spec", "devices", 0, "capacity", "egress", "value") == "3G"
	})
	c.pod(example, "wide", "1500M")
	until("of which a pod gets its part", func() bool { return c.nodeOf("wide") == "n1" })

	c.remove("/api/v1/nodes/n2")
	until("a node that is taken away takes its slice along", func() bool { return c.slice("n2") == nil })
	fmt.Println("all of it is so")
}
