// Package sourcetest is the conformance suite for implementations of source.Source.
//
//	func TestSource(t *testing.T) {
//		sourcetest.Run(t, sourcetest.Harness{
//			Start: func(t testing.TB) sourcetest.Broker { return newBroker(t) },
//			Can:   sourcetest.Can{Lanes: 3, Reopens: true, Remembers: true, HandsBack: true},
//		})
//	}
//
// Each [Case] tests one law, and prints the law when it is broken. A source may deliver a
// message more than once, unless the law says otherwise. The suite also tests abilities that
// the harness does not declare in [Can]: such a call must fail cleanly.
//
// [Memory] is a broker and its source in memory. It passes the suite.
package sourcetest
