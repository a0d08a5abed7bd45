import { Injectable } from '@nestjs/common';
import type { MockModelProvider } from './simulator/model-simulator.js';

/** The language model of mocks in this process. @stability preview */
@Injectable()
export class MockModels {
  /** Null without a module that provides one: results are then made from the schemas. */
  provider: MockModelProvider | null = null;
}

/** The recorded calls that mocks of this process replay. @stability preview */
@Injectable()
export class MockRecordings {
  /** Returns the recorded calls of a connection as JSON, in their order. Null without a module that records calls. */
  read: ((namespaceId: string, connectionId: string) => Promise<string[]>) | null = null;
}
