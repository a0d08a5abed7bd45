/**
 * A header value that every HTTP server accepts: visible ASCII, with blanks and tabs inside. Decoded query values can
 * contain line breaks, which would inject headers.
 */
export const HEADER_VALUE = /^[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?$/;
