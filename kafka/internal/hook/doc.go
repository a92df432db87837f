// Package hook is what hangs in franz-go's clients: it hears of connections,
// answers and batches, and knows nothing of groups and lanes.
//
// [Budget] bounds the memory of what is fetched, [Throttle] holds back answers
// that bring nothing, [LastAnswer], [UnansweredCommits] and [LastDial] remember
// what brokers did, and [Logger] passes the client's warnings on.
package hook
