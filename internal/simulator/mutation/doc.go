// Package mutation changes functions of this module one at a time and runs the
// result, without touching the tree.
//
// A Change replaces a piece of one function. Plant writes files in which every
// changed function stands once as it is and once per change, under another
// name; an overlay gives these files to the compiler. So one build has every
// change, and a variable of the environment switches one of them on.
//
// Changes come from two places: an Edit finds one place in a named function by
// the names that the code there uses, and Mutants lists all small mistakes that
// could be made in the functions of some files.
package mutation
