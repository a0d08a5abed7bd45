import { pages } from '../../e2e/service-page/access.js';

export const undocumented = Object.keys(pages ?? {});

/** The page has no operation of its own. */
export default async function (): Promise<void> {}
