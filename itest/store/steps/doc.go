// Package steps kills processes of a consumer with steps at each point between claim and settle, on each SQL store,
// freezes others past their lease, and checks the effects.
package steps
