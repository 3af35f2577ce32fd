// Package repository holds the pacman repositories of mesh-release against the
// real programs: repo-add, pacman, gpg, strace.
//
// It has tests only. They need those programs, and pacman needs root; where one is
// missing they are skipped and say so. How fast repositories are made beside
// repo-add's is measured in release/internal/repository.
package repository
