// Package hook contains the hooks of franz-go's clients. They observe connections, answers and batches, and know nothing
// about groups and lanes.
//
// [Budget] limits the memory of fetched records. [Throttle] delays answers without records. [LastAnswer],
// [UnansweredCommits] and [LastDial] store what brokers did. [Logger] logs the client's warnings.
package hook
