/** Pages for people in a browser. The paths of the authorization server itself are no routes of ours. */
export const undocumented = ['GET /consent/{uid}', 'POST /consent/{uid}', 'GET /me/access', 'POST /me/access'];

/** The pages have no documented operation. */
export default async function (): Promise<void> {}
