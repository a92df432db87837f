// Package hook contains the hooks of the franz-go clients. Hooks observe connections, answers and batches. Hooks know
// nothing of groups and lanes.
//
// [Budget] limits the memory of fetched records. [Throttle] delays answers without records. [LastAnswer],
// [UnansweredCommits] and [LastDial] store the last answer or error of the brokers. [Logger] logs the client's
// warnings.
package hook
