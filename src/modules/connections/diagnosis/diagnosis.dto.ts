import { ApiProperty } from '#api-docs';
import { connectionExample, ConnectionStatusDto } from '../core/connection.dto.js';

/** All steps in order; each kind of target has some of them. */
export const diagnosisSteps = [
  'target',
  'dns',
  'guard',
  'connect',
  'tls',
  'http',
  'tunnel',
  'era',
  'authorization',
  'discovery',
  'client',
  'token',
  'list',
] as const;
export type DiagnosisStepName = (typeof diagnosisSteps)[number];

export class DiagnosisStepDto {
  /**
   * `target` the target of the connection exists; `dns` its host has addresses; `guard` egress rules allow one of them;
   * `connect` a socket opens; `tls` its certificate is valid; `http` it answers requests; `tunnel` a local server is paired;
   * `era` it speaks MCP; `authorization` it accepts the credentials; where it does not, the login: `discovery` an authorization server
   * is found, `client` it knows Slipway, `token` a token can be had; `list` it lists its tools.
   */
  @ApiProperty({ enum: diagnosisSteps })
  step: string;
  /** `ok`, `failed`, or `skipped`: not applicable, or an earlier step failed. */
  @ApiProperty({ enum: ['ok', 'failed', 'skipped'] })
  status: string;
  /** The observation, as one line for people. */
  evidence: string;
  /** Duration in milliseconds. */
  ms: number;
}

export class DiagnosisDto {
  connectionId: string;
  /** `url`, `server`, `mock`, `source` or `uplink`. */
  @ApiProperty({ enum: ['url', 'server', 'mock', 'source', 'uplink'] })
  target: string;
  steps: DiagnosisStepDto[];
  /** The result and what to do, as a message for people. */
  verdict: string;
  /** The connection's status, updated by this diagnosis. */
  status: ConnectionStatusDto;
}

const skipped = 'Skipped, since an earlier step failed.';

export const diagnosisExample = {
  connectionId: 'my-first',
  target: 'url',
  steps: [
    { step: 'target', status: 'ok', evidence: 'The target is the MCP server at 127.0.0.1:3001.', ms: 0 },
    { step: 'dns', status: 'skipped', evidence: 'The host is an IP address: no DNS lookup.', ms: 0 },
    { step: 'guard', status: 'ok', evidence: 'The egress rules allow its address.', ms: 0 },
    {
      step: 'connect',
      status: 'failed',
      evidence: 'Nothing listens on 127.0.0.1:3001: is the server running, and is the port right?',
      ms: 2,
    },
    { step: 'tls', status: 'skipped', evidence: skipped, ms: 0 },
    { step: 'http', status: 'skipped', evidence: skipped, ms: 0 },
    { step: 'era', status: 'skipped', evidence: skipped, ms: 0 },
    { step: 'authorization', status: 'skipped', evidence: skipped, ms: 0 },
    { step: 'list', status: 'skipped', evidence: skipped, ms: 0 },
  ],
  verdict: 'It stops at connect: start the MCP server, and check host and port of mcpUrl.',
  status: {
    ...connectionExample.status,
    state: 'error',
    reason: 'unreachable',
    message: 'Nothing listens on 127.0.0.1:3001: is the server running, and is the port right?',
    nextStep: 'Check the address. If it is right, wait: Slipway rechecks automatically. The diagnosis has the details.',
  },
};
