// Package steps kills processes of a consumer of steps at each point between claim and
// settle, on each SQL store, freezes others past their lease, and reads what took effect.
package steps
