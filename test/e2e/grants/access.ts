import { kinds } from '../../support/access/access-kinds.js';
import type { ModuleAccess } from '../../support/access/access-matrix.js';
import { pathOf } from '../../support/database/server-rows.js';

export const access: ModuleAccess['access'] = {
  'POST /servers/{qualifiedName}/access-requests': kinds.everyKeyWritesOfServer,
  'GET /servers/{qualifiedName}/access-requests': kinds.ownerWrites,
  'POST /servers/{qualifiedName}/access-requests/{requestId}': kinds.ownerWrites,
  'GET /accounts/{accountId}/access-requests': kinds.ownAccountReads,
  // Without a query every key is told what is missing in it.
  'GET /access/check': kinds.everyKeyReads,
};

export const fill: ModuleAccess['fill'] = async (app, { server }) => {
  const { body } = await app.as(await app.account()).post(pathOf(server, '/access-requests'), { text: 'Please.' });
  return { requestId: body.id as string };
};
