// Package sourcetest is the conformance suite for implementations of source.Source: a set of tests that every
// source must pass. The test of a source calls [Run]:
//
//	func TestSource(t *testing.T) {
//		sourcetest.Run(t, sourcetest.Harness{
//			Start: func(t testing.TB) sourcetest.Broker { return newBroker(t) },
//			Can:   sourcetest.Can{Lanes: 3, Reopens: true, Remembers: true, HandsBack: true},
//		})
//	}
//
// Each [Case] tests one law. If the source breaks the law, the case fails and prints the law. A source may deliver a
// message more than once, unless a law says otherwise. The suite also calls methods for abilities that the harness does
// not declare in [Can]: such a call must fail cleanly.
//
// [Memory] is a broker in memory with its own source, which passes the suite.
package sourcetest
