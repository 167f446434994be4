// Package arch holds the rules that no compiler checks, as tests: which room may import which (arrows run down only,
// docs/design.md), which modules the project depends on (modules.txt), and what library code leaves alone: the clock in
// pure files, standard output, the environment, init functions.
//
// The rules are the tables in rules_test.go. Each failure names the file, what it does and why it must not. The tests
// parse the sources of this module, test files and files of every operating system included, and build nothing.
package arch
