#include "uring/alone.h"

int main(int argc, char **argv)
{
	return uring_alone_main(argc, argv, false);
}
