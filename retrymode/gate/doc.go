// Package gate is the pure core of the adaptive limiter: a state machine that paces attempts at the rate that the store really delivers.
//
// The time comes in with every call and decisions go out; there is no clock, no goroutine and no lock, so one code runs in front of real
// clients (package retrymode), in the simulator and in tests.
//
// # The law
//
//  1. The gate is off until there is evidence of overload; then attempts pass as they come and nothing is delayed.
//  2. Evidence is a handful of refusals ([Params.EnterRefusals]) that are also more than a small share of the answers ([Params.Tolerance]).
//     A single 503 is not.
//  3. On, the gate is a token bucket with almost no burst. Within a lane attempts go in order of arrival; retries go before first attempts.
//  4. A cut sets the rate to just below the delivered rate: the answers per second that were no refusal, in the last epoch, or since the last cut or reopening (ten
//     seconds at most) if that is more. Under overload that number is the limit of the store, so there is nothing to guess.
//  5. An epoch is one second of busy time, and longer when calls are. Refusals of attempts sent before the last cut were that cut's reason and count for
//     nothing, so any number of simultaneous 503s is one event.
//  6. At the end of an epoch: too many refusals cut; a few hold; none, with somebody waiting, grow by a step that becomes longer with every clean
//     epoch, and leaps once the rate has clearly passed what was too much before. A store that answers clearly less than it is sent has a line inside it: it is sent
//     less until it has caught up.
//  7. If most of what was sent since the last cut was refused, the gate cuts at once. If all of it was, or nothing else has come back for an epoch, the gate is shut: only
//     probes go, fewer every second, until one is answered. Then it resumes at what was delivered since it opened the last time, per second of the whole cycle, which
//     is a quota's rate whatever its window is; after an outage it doubles up from there with every few answers (slow start). Slow start also follows a cut when
//     too few answers say what the store delivers.
//  8. Refusals that stay although the rate has been cut again and again do not depend on the rate. Twice their share is tolerated from then on.
//  9. The rate is never so low that the calls in hand would wait longer than [Params.MaxWait].
//  10. A refused call is held back before its retry; a hold ends early when the gate reopens, or when permissions are to be had and the store answers. Probes are
//     first attempts where there are any, since they have all their retries left, until a retry has waited for MaxWait.
//
// The busy clock stands still while nothing is in hand, so an idle gap is neither remembered as slowness nor forgotten.
//
// The law stands in the tradition of BBR's policer detection (Linux tcp_bbr.c: the delivered rate between losses is the policer's rate), of TCP CUBIC's
// single reduction per congestion event (RFC 9438), and of EMRFS's AIMD retries. Measurements of it and of its alternatives are in docs/lab.
package gate
