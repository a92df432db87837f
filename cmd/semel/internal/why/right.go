package why

import "errors"

// LacksRight reports whether err means that the database role lacks a privilege. When a privilege is missing,
// callers show the records that the role can read.
func LacksRight(err error) bool {
	var of interface{ SQLState() string }
	return errors.As(err, &of) && of.SQLState() == "42501"
}

// noteMissingRight handles a missing privilege: it adds a text with the parameter what (the name of the unreadable
// record) and the error to *unread, and returns nil. If err is not about a missing privilege, the function returns err.
func noteMissingRight(unread *[]string, what string, err error) error {
	if err == nil || !LacksRight(err) {
		return err
	}
	*unread = append(*unread, what+": "+err.Error())
	return nil
}
