import { describe, expect } from '@jest/globals';
import { verifies } from '../../../test/support/verifies.js';
import { loadEnv } from '../../config/env.js';
import { internalRoutes } from './internal-routes.js';

describe('the routes to the network of the operator', () => {
  const routes = internalRoutes(
    loadEnv({
      HOSTING_EGRESS_ALLOW: '10.0.0.0/8, 169.254.0.0/16, 64:ff9b::/96',
      DATABASE_URL: 'postgres://u:p@10.0.0.5/x',
      ENCRYPTION_KEYS: `k1:${'A'.repeat(43)}=`,
    }),
  );

  verifies('egress:hosted:internal', 'close the database in every spelling of its address', () => {
    const isClosed = routes?.closedPorts.get(5432);
    const addresses = ['10.0.0.5', '::ffff:10.0.0.5', '::ffff:a00:5', '10.0.0.6'];
    expect(addresses.map((address) => isClosed?.(address))).toEqual([true, true, true, false]);
  });

  verifies('egress:hosted:internal', 'open neither link-local addresses nor those that carry another one', () => {
    const addresses = ['10.0.0.6', '169.254.169.254', '169.254.1.1', '64:ff9b::a00:5'];
    expect(addresses.map((address) => routes?.policy.allows(address, address))).toEqual([true, false, false, false]);
  });
});
