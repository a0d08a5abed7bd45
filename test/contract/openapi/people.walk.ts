/** Pages for people in a browser. */
export const undocumented = ['GET /login', 'POST /login', 'POST /logout'];

/** People: their pages have no documented operation. */
export default async function (): Promise<void> {}
