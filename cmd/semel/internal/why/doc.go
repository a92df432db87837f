// Package why gathers what a store knows of one message and says in a sentence or two
// whether its effect is there, why or why not, and which command changes that. It changes
// nothing, and decides nothing: what it tells may be another a moment later.
package why
