import { pages } from '../../e2e/people-pages/access.js';

export const undocumented = Object.keys(pages ?? {});

/** The page has no operation of its own. */
export default async function (): Promise<void> {}
