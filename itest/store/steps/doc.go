// Package steps tests consumers with steps on each SQL store. It kills processes at each point between claim
// and acknowledgement, freezes other processes for longer than their lease, and checks the effects.
package steps
