/** The first name of paths at which the runtime asks code on behalf of this service only. */
const RESERVED = '__smithery';

/** Whoever reads a path may decode it once more than we do; more often nobody does. */
const DECODINGS = 3;

/**
 * Whether a path is one that is not reachable from outside, however it is spelled: encoded (in several rounds), in other
 * letters of the same names, behind empty segments and dots, with dots or spaces at the end. The name is taken from code
 * anywhere in a path, since dots may lead back to the front.
 *
 * @param path as it is passed on; its query is not looked at
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

/** A segment without its parameters, and without what servers take for nothing: dots and spaces at its ends, controls. */
function named(segment: string): string {
  const [visible] = segment.replace(/\p{C}/gu, '').split(/[;?#]/, 1);
  return visible.replace(/^[. ]+/, '').replace(/(?<![. ])[. ]+$/, '');
}
