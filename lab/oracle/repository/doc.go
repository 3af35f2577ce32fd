// Package repository holds the pacman repositories of mesh-release against the
// real programs: repo-add, pacman, gpg, strace.
//
// It has tests only. They need those programs, and pacman needs root; where one is
// missing they are skipped and say so. The benchmark prints how much faster than
// repo-add a repository of 1,000 packages is made, in the same run:
//
//	go test -run '^$' -bench . -benchtime 1x ./lab/oracle/repository
package repository
