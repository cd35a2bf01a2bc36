// The Open Policy Agent: what its own main.go does.
package main

import (
	"os"

	"github.com/open-policy-agent/opa/cmd"
)

func main() {
	if err := cmd.Command(nil, "OPA").Execute(); err != nil {
		os.Exit(1)
	}
}
