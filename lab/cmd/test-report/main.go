// Command test-report reads `go test -json` and prints what a person reads; it
// fails when a test does. With NOX_EXPECTED_SKIPS naming a file, a test that is
// skipped and not named in it ("PACKAGE TEST" a line) fails as well.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/nox-mesh/nox-mesh/lab/testreport"
)

func main() {
	var expected []string
	if name := os.Getenv("NOX_EXPECTED_SKIPS"); name != "" {
		b, err := os.ReadFile(name)
		if err != nil {
			fmt.Fprintf(os.Stderr, "test-report: cannot read the expected skips: %v\n", err)
			os.Exit(1)
		}
		expected = strings.Split(strings.TrimSpace(string(b)), "\n")
	}
	ok, err := testreport.Write(os.Stdout, os.Stdin, expected)
	if err != nil {
		fmt.Fprintf(os.Stderr, "test-report: cannot read the tests' output: %v\n", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}
