package kind

import "regexp"

// A URL may carry secrets: a password or a token before its host, a signature in
// its query. What is inside of a message or a line of a log is read by many, and
// kept for long.

var (
	// userinfo ends at the last @ before the path; nothing in it is a slash.
	userinfo = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^/?#\s"<>]*@`)
	query    = regexp.MustCompile(`((?i:https?)://[^?#\s"<>]*)\?[^#\s"<>]*`)
)

// HideCredentials returns a text in which no URL has a user name or a password,
// and none of http a query.
func HideCredentials(text string) string {
	return query.ReplaceAllString(userinfo.ReplaceAllString(text, "${1}xxxxx@"), "$1?…")
}
