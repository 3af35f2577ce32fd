// Package hardcases holds the list of the hard cases: what real machines do to
// programs like this one, each with the tests that hold it, and what no test
// holds yet. It has no code but the test that holds the list true:
//
//	go test -v -run TestCases ./lab/hardcases
//
// A test carries the case it holds in its name: TestF08… for F-08, TestF04F10…
// for two of them, TestMachineU06… for one that needs a machine; or a part of
// it does, a subtest whose name begins with "F-08". So the list can be checked
// by reading the tests, whatever they are built with, without running one.
package hardcases
