// The API server of Kubernetes, and the etcd in which it keeps its objects, in one process.
// Its arguments are a folder for all that it writes, and a port. Who has the token "admin" may do everything.
package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	folder, port := os.Args[1], os.Args[2]
	key := filepath.Join(folder, "service-accounts.pem")
	tokens := filepath.Join(folder, "tokens.csv")
	writeKey(key)
	check(os.WriteFile(tokens, []byte("admin,admin,admin,system:masters\n"), 0o600))
	command := app.NewAPIServerCommand()
	command.SetArgs([]string{
		"--etcd-servers=" + startEtcd(filepath.Join(folder, "etcd")),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + port,
		"--cert-dir=" + folder,
		"--token-auth-file=" + tokens,
		"--authorization-mode=RBAC",
		// Nobody makes the account that pods have by default.
		"--disable-admission-plugins=ServiceAccount",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + key,
		"--service-account-signing-key-file=" + key,
		"--service-cluster-ip-range=10.0.0.0/24",
		"--endpoint-reconciler-type=none",
		"--allow-privileged=true",
	})
	os.Exit(cli.Run(command))
}

// startEtcd starts etcd at ports of its own and returns its address.
func startEtcd(folder string) string {
	any, err := url.Parse("http://127.0.0.1:0")
	check(err)
	config := embed.NewConfig()
	config.Dir = folder
	config.LogLevel = "error"
	config.UnsafeNoFsync = true
	config.ListenClientUrls = []url.URL{*any}
	config.AdvertiseClientUrls = []url.URL{*any}
	config.ListenPeerUrls = []url.URL{*any}
	config.AdvertisePeerUrls = []url.URL{*any}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	etcd, err := embed.StartEtcd(config)
	check(err)
	<-etcd.Server.ReadyNotify()
	return "http://" + etcd.Clients[0].Addr().String()
}

func writeKey(path string) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	check(err)
	block := pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	check(os.WriteFile(path, pem.EncodeToMemory(&block), 0o600))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
