// Package steps kills processes of a consumer of steps at each point between claim and
// settle, on each SQL store, and reads what took effect.
package steps
