import { kinds } from '../../support/access/access-kinds.js';
import type { ModuleAccess } from '../../support/access/access-matrix.js';

/** Only the owner of the namespace, and no grant of a server or connection in it. */
export const access: ModuleAccess['access'] = {
  'PUT /sample-notes/{namespace}/{name}': kinds.ownNamespaceWrites,
  'GET /sample-notes/{namespace}': kinds.ownNamespaceReads,
  'GET /sample-notes/{namespace}/{name}': kinds.ownNamespaceReads,
  'DELETE /sample-notes/{namespace}/{name}': kinds.ownNamespaceWrites,
};

/** The sample note that the routes of one read. */
export const fill: ModuleAccess['fill'] = async (app, { owner, namespace }) => {
  await app.as(owner).put(`/sample-notes/${namespace}/first`, { text: 'Sunny' });
  return { name: 'first' };
};
