package why

import "errors"

// LacksRight reports whether err means that the database role lacks a privilege. When a privilege is missing,
// callers show the records that the role can read.
func LacksRight(err error) bool {
	var of interface{ SQLState() string }
	return errors.As(err, &of) && of.SQLState() == "42501"
}

// noteMissingRight handles a missing privilege: it adds the text what and the error to unread, and returns
// nil. The function returns every error that is not about a missing privilege.
func noteMissingRight(unread *[]string, what string, err error) error {
	if err == nil || !LacksRight(err) {
		return err
	}
	*unread = append(*unread, what+": "+err.Error())
	return nil
}
