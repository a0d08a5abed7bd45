import { Controller, Get } from '@nestjs/common';
import { FramedPage, Page } from '../../extension.js';
import { servicePage } from './service.page.js';
import { ServiceSections } from './service-sections.js';

/** `/ui/service`: the state of the service, for operators. */
@Controller('ui/service')
export class ServicePageController {
  constructor(private readonly serviceSections: ServiceSections) {}

  @Get()
  @Page('accounts:read', { operator: true })
  async show(): Promise<FramedPage> {
    const sections = await this.serviceSections.read();
    return new FramedPage((_, root) => servicePage(root, sections));
  }
}
