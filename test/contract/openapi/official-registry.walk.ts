import { pages } from '../../e2e/official-registry/access.js';

export const undocumented = Object.keys(pages ?? {});

/** The pages have no operation of their own. */
export default async function (): Promise<void> {}
