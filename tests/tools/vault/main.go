// The core of HashiCorp Vault with the secrets engine kv and the auth method kubernetes, everything in memory: what
// `vault server` is without the storages, seals and clouds that a test does not need. It starts sealed and without a key;
// the tests set it up through its API.
package main

import (
	"crypto/tls"
	"flag"
	"log"
	"net"
	"net/http"

	"github.com/hashicorp/go-hclog"
	auth "github.com/hashicorp/vault-plugin-auth-kubernetes"
	kv "github.com/hashicorp/vault-plugin-secrets-kv"
	"github.com/hashicorp/vault/command/server"
	vaulthttp "github.com/hashicorp/vault/http"
	"github.com/hashicorp/vault/internalshared/configutil"
	"github.com/hashicorp/vault/sdk/helper/consts"
	"github.com/hashicorp/vault/sdk/logical"
	"github.com/hashicorp/vault/sdk/physical/inmem"
	"github.com/hashicorp/vault/vault"
)

// builtins are the plugins that this server has.
type builtins map[consts.PluginType]map[string]logical.Factory

func (b builtins) Contains(name string, of consts.PluginType) bool {
	_, found := b[of][name]
	return found
}

func (b builtins) Get(name string, of consts.PluginType) (func() (interface{}, error), bool) {
	factory, found := b[of][name]
	return func() (interface{}, error) { return factory, nil }, found
}

func (b builtins) Keys(of consts.PluginType) []string {
	names := []string{}
	for name := range b[of] {
		names = append(names, name)
	}
	return names
}

func (b builtins) DeprecationStatus(name string, of consts.PluginType) (consts.DeprecationStatus, bool) {
	return consts.Supported, b.Contains(name, of)
}

func (b builtins) IsBuiltinEntPlugin(string, consts.PluginType) bool {
	return false
}

func newCore() (*vault.Core, error) {
	logger := hclog.New(&hclog.LoggerOptions{Level: hclog.Error})
	storage, err := inmem.NewInmem(nil, logger)
	if err != nil {
		return nil, err
	}
	secrets := map[string]logical.Factory{"kv": kv.Factory}
	credential := map[string]logical.Factory{"kubernetes": auth.Factory}
	return vault.NewCore(&vault.CoreConfig{
		Physical:           storage,
		LogicalBackends:    secrets,
		CredentialBackends: credential,
		BuiltinRegistry:    builtins{consts.PluginTypeSecrets: secrets, consts.PluginTypeCredential: credential},
		RawConfig:          server.NewConfig(),
		Logger:             logger,
		DisableMlock:       true,
	})
}

func listen(address, certificate, key string) (net.Listener, error) {
	if certificate == "" {
		return net.Listen("tcp", address)
	}
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	return tls.Listen("tcp", address, &tls.Config{Certificates: []tls.Certificate{pair}})
}

func main() {
	address := flag.String("listen", "127.0.0.1:8200", "address and port")
	certificate := flag.String("cert", "", "PEM certificate; without it plain HTTP")
	key := flag.String("key", "", "its key")
	flag.Parse()
	core, err := newCore()
	if err != nil {
		log.Fatal(err)
	}
	listener, err := listen(*address, *certificate, *key)
	if err != nil {
		log.Fatal(err)
	}
	handler := vaulthttp.Handler.Handler(&vault.HandlerProperties{Core: core, ListenerConfig: &configutil.Listener{}})
	log.Fatal(http.Serve(listener, handler))
}
