// Package lab runs retry policies against models of stores, to say what each of them costs.
//
// A Scenario is a Workload on a Store. Simulate runs it in virtual time with one Policy per client: Standard, the SDKs' adaptive modes
// (SDKGo, JavaOld, JavaNew) or the gate. An hour of traffic takes a second or less, and a seed gives one run. The tests hold the simulator
// against what was measured with real clients.
//
// The stores of heldout.go are kept apart: nothing is tuned on them.
package lab
