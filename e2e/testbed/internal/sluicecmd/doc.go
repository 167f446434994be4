// Package sluicecmd runs the sluice command as a child process, as a user would,
// and reads what it tells: the lines of its log and the reports it writes.
//
// No process outlives the one that started it, where the system can see to that.
package sluicecmd
