from sawbones.cli.main import main

main()
