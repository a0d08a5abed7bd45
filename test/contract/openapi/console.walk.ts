import { access, pages } from '../../e2e/console/access.js';

/** Pages for people in a browser, and their files. */
export const undocumented = Object.keys({ ...access, ...pages });

/** The pages have no documented operation. */
export default async function (): Promise<void> {}
