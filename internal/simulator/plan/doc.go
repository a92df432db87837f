// Package plan draws what a simulated run is made of, before it starts: the policy, the faults and
// the features that its seed has.
package plan
