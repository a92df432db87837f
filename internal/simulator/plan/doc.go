// Package plan draws the policy, the faults and the features of a simulated run before the run starts.
package plan
