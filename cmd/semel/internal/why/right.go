package why

import "errors"

// LacksRight reports whether err means that the database role lacks a privilege. Callers then show the
// remaining records.
func LacksRight(err error) bool {
	var of interface{ SQLState() string }
	return errors.As(err, &of) && of.SQLState() == "42501"
}

// The function note handles a missing privilege: it adds the text what and the error to unread, and returns
// nil. Other errors are returned.
func note(unread *[]string, what string, err error) error {
	if err == nil || !LacksRight(err) {
		return err
	}
	*unread = append(*unread, what+": "+err.Error())
	return nil
}
