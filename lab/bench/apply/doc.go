// Package apply measures how the host makes files what its declaration says,
// beside CFEngine and Puppet: whole commands, in one run, in turn, with their
// versions. A peer that is not installed is left out.
//
// It has benchmarks only, which assert no time:
//
//	go test ./lab/bench/apply -run '^$' -bench . -benchtime 3x -timeout 1h
//
// What each made is looked at by other means, also after somebody's edit that
// keeps size and time: nobody is quick by not looking. The peers do not sync
// what they write; what it costs to make it last is a row of its own.
package apply
