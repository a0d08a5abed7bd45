import { describe, expect, it } from '@jest/globals';
import { AddressPolicy, parseEgressAllow } from '../../platform/egress/address-policy.js';
import { Egress } from '../../platform/egress/egress.js';
import { EgressRefusedError } from '../../platform/egress/egress.errors.js';
import { EgressHttp } from './http.facade.js';

/** A facade whose DNS has one address for every host, or none. */
function httpWith(address: string | null): EgressHttp {
  const policy = new AddressPolicy(parseEgressAllow(''));
  const egress = new Egress(policy, (_host, _options, callback) => {
    if (address === null) callback(new Error('ENOTFOUND'), []);
    else callback(null, [{ address, family: 4 }]);
  });
  return new EgressHttp(egress);
}

describe('Http.check', () => {
  it('rejects a host with a private address', async () => {
    await expect(httpWith('10.0.0.1').check('https://hooks.example/')).rejects.toThrow(EgressRefusedError);
  });

  it.each([['a public address', '93.184.215.14'] as const, ['no address', null] as const])(
    'accepts a host with %s',
    async (_what, address) => {
      await expect(httpWith(address).check('https://hooks.example/')).resolves.toBeUndefined();
    },
  );
});
