// Package sourcetest is the conformance suite of source.Source, for those who
// write one.
//
//	func TestSource(t *testing.T) {
//		sourcetest.Run(t, sourcetest.Harness{
//			Start: func(t testing.TB) sourcetest.Broker { return newBroker(t) },
//			Can:   sourcetest.Can{Lanes: 3, Reopens: true, Remembers: true, HandsBack: true},
//		})
//	}
//
// Each [Case] tests one law, which it states in a sentence and prints when it
// is broken. The cases count messages, not deliveries: a source may deliver
// what it likes more than once, unless the law says otherwise. What a harness
// does not declare in [Can] is tested as well, to fail cleanly where a source
// must not pretend.
//
// [Memory] is a broker and a source in memory: the smallest one that passes.
package sourcetest
