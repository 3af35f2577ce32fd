// Command test-report reads `go test -json` and prints what a person reads; it
// fails when a test does.
package main

import (
	"fmt"
	"os"

	"github.com/nox-mesh/nox-mesh/lab/testreport"
)

func main() {
	ok, err := testreport.Write(os.Stdout, os.Stdin)
	if err != nil {
		fmt.Fprintf(os.Stderr, "test-report: cannot read the tests' output: %v\n", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}
