// Package steps tests consumers with steps on each SQL store. The tests kill processes at each point between claim and
// ack, freeze other processes for longer than their lease, and check the effects.
package steps
