import type { IncomingMessage, ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import { ConnectionCallsService } from '../../logs/connection-calls.service.js';
import { CallRecord } from './call-record.js';

/** Records requests to connections. */
@Injectable()
export class LogRecorder {
  constructor(private readonly calls: ConnectionCallsService) {}

  /** Runs the work of one request and records it when it ends. @throws the error of `work` */
  async watching<T>(
    { method = 'POST', url = '' }: Pick<IncomingMessage, 'method' | 'url'>,
    response: Pick<ServerResponse, 'statusCode'>,
    work: (record: CallRecord) => Promise<T>,
  ): Promise<T> {
    const record = new CallRecord();
    try {
      return await work(record);
    } catch (error) {
      record.threw(error);
      throw error;
    } finally {
      const call = record.finish({ method, url, status: response.statusCode });
      if (call) this.calls.record(call);
    }
  }
}
