/** First segment of the paths that only this service may request from hosted code. */
const RESERVED = '__smithery';

/** Rounds of percent-decoding: hosted code may decode a path again. */
const DECODINGS = 3;

/**
 * True for a path that only this service may request, in any spelling: percent-encoded several times, in compatibility
 * letters, after empty segments and dots, with dots or spaces at the end. The name is reserved in every segment, since
 * dots may lead back to the first one.
 *
 * @param path the path to be passed on; its query is ignored
 */
export function isReserved(path: string): boolean {
  let plain = path.split(/[?#]/, 1)[0].replace(/%(?:25)+/g, '%');
  for (let round = 0; round < DECODINGS; round += 1) {
    plain = plain.replace(/(?:%[0-9a-f]{2})+/gi, (escaped) =>
      Buffer.from(escaped.replaceAll('%', ''), 'hex').toString(),
    );
  }
  const segments = plain.normalize('NFKC').toLowerCase().split(/[/\\]/);
  return segments.some((segment) => named(segment) === RESERVED);
}

/** A segment without its parameters, control characters, and dots and spaces at its ends, which servers ignore. */
function named(segment: string): string {
  const [visible] = segment.replace(/\p{C}/gu, '').split(/[;?#]/, 1);
  return visible.replace(/^[. ]+/, '').replace(/(?<![. ])[. ]+$/, '');
}
